"""What people do with their accounts. Both doors, web and api, call here."""

from __future__ import annotations

from django.contrib.auth.hashers import make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models.functions import Now

from accounts.models import User
from scheduler_project.lib.constraints import refusals, taken
from scheduler_project.lib.errors import DomainError, FieldError, ValidationFailed
from scheduler_project.lib.text import clean_name

#: Hashing takes time in proportion; nobody types more.
MAX_PASSWORD_CHARS = 1_000
MAX_EMAIL_CHARS = 254
MAX_NAME_CHARS = 200


class WrongCredentials(DomainError):
    """No such account, a wrong password or a closed account; which of these is not told."""

    code = "unauthorized"

    def __init__(self) -> None:
        super().__init__("The e-mail address or the password is wrong.")


def register_user(*, email: str, password: str, full_name: str = "") -> User:
    """Open an account.

    Raises:
        ValidationFailed: not an e-mail address, or a password that is too easy to guess.
        Conflict: the address has an account already.
    """
    address = _clean_email(email)
    name = clean_name(full_name, "full_name", MAX_NAME_CHARS) if full_name.strip() else ""
    _check_password(password, User(email=address, full_name=name), "password")
    with refusals({"users_email_key": taken("email", "has an account already")}):
        return User.objects.create_user(address, password, full_name=name)


def log_in(*, email: str, password: str) -> User:
    """The account, if the password is right. Takes as long and says the same whatever is wrong.

    Raises:
        WrongCredentials: always the same.
    """
    password = password[:MAX_PASSWORD_CHARS]
    user = User.objects.filter(email=email.strip().lower()[:MAX_EMAIL_CHARS]).first()
    if user is None:
        make_password(password)  # as costly as checking one
        raise WrongCredentials
    if not user.check_password(password) or not user.is_active:
        raise WrongCredentials
    return user


def change_password(user: User, *, old: str, new: str) -> None:
    """Set a new password; every token and session from before ends with it.

    Raises:
        ValidationFailed: the old one is wrong, or the new one too easy to guess.
    """
    if not user.check_password(old[:MAX_PASSWORD_CHARS]):
        raise ValidationFailed.of("old_password", "is wrong")
    _check_password(new, user, "new_password")
    hashed = make_password(new)
    User.objects.filter(pk=user.pk).update(password=hashed, updated_at=Now())
    user.password = hashed


def _clean_email(email: str) -> str:
    address = email.strip().lower()
    try:
        validate_email(address)
    except ValidationError:
        raise ValidationFailed.of("email", "is not an e-mail address") from None
    # Beyond ASCII two addresses may look alike, and the database's lower() need not be Python's.
    if not address.isascii() or len(address) > MAX_EMAIL_CHARS:
        raise ValidationFailed.of("email", f"must be at most {MAX_EMAIL_CHARS} ASCII characters")
    return address


def _check_password(password: str, user: User, field: str) -> None:
    if len(password) > MAX_PASSWORD_CHARS:
        raise ValidationFailed.of(field, f"must have at most {MAX_PASSWORD_CHARS} characters")
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise ValidationFailed(" ".join(error.messages), [FieldError(field, m) for m in error.messages]) from None
