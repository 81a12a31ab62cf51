"""Shapes of what people send and get when they sign in."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from scheduler_project.lib.rest.fields import Input, Text


class CredentialsInput(Input):
    email = Text(max_length=254)
    password = Text(trim_whitespace=False)


class RegisterInput(CredentialsInput):
    full_name = Text(max_length=200, allow_blank=True, default="")


class RefreshInput(Input):
    refresh = Text(max_length=4_000)


class PasswordInput(Input):
    old_password = Text(trim_whitespace=False)
    new_password = Text(trim_whitespace=False)


class UserOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    email = serializers.CharField()
    full_name = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()


class TokensOutput(serializers.Serializer[Any]):
    access = serializers.CharField()
    refresh = serializers.CharField()
    expires_in = serializers.IntegerField()


class SignedInOutput(TokensOutput):
    token_type = serializers.CharField()


class SignedUpOutput(SignedInOutput):
    user = UserOutput()
