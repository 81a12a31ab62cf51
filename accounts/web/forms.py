"""What a person types to sign in or up."""

from django import forms

from accounts.services import MAX_EMAIL_CHARS, MAX_NAME_CHARS, MAX_PASSWORD_CHARS


class SignInForm(forms.Form):
    email = forms.CharField(max_length=MAX_EMAIL_CHARS)
    password = forms.CharField(max_length=MAX_PASSWORD_CHARS, strip=False)


class RegisterForm(SignInForm):
    full_name = forms.CharField(max_length=MAX_NAME_CHARS, required=False)
