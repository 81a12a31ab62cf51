# One image for web, worker and scheduler; docker-compose.yml says which command makes it which.
FROM python:3.13-slim AS build
WORKDIR /srv/punctual
COPY requirements.txt ./
RUN python -m venv /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.txt
COPY . .
# Both secrets are asked for in production; nothing of them stays in the image.
RUN APP_ENV=production APP_DATABASE_URL=postgresql://nobody@127.0.0.1/none \
    APP_SECRET_KEY=only-to-collect-the-static-files-0 APP_JWT_SECRET=only-to-collect-the-static-files-1 \
    /opt/venv/bin/python manage.py collectstatic --no-input --verbosity 0

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /srv/punctual punctual
COPY --from=build /opt/venv /opt/venv
COPY --from=build /srv/punctual /srv/punctual
WORKDIR /srv/punctual
USER punctual
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
EXPOSE 3000 9001
CMD ["gunicorn", "-c", "scheduler_project/gunicorn.py", "scheduler_project.asgi:application"]
