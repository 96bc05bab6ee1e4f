"""The accounts file of a Pravega with basic authentication."""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

# The parameters of Pravega's password handler. It stores the count with the hash, but not the
# algorithm and the length. It hashes at each call. The usual 5,000 rounds would take three quarters
# of the CPU time of a store with logins. These passwords are public, so one round suffices.
_ITERATIONS = 1
_KEY_BYTES = 64
_SALT_BYTES = 32


@dataclass(frozen=True)
class User:
    """One account.

    Attributes:
        name: login name.
        password: password of a test, in plain text.
        rights: access control list in Pravega's notation.
    """

    name: str
    password: str
    rights: str


ADMIN = User("admin", "1111_aaaa", "prn::*,READ_UPDATE")
READER = User("reader", "2222_bbbb", "prn::*,READ")


def accounts_file(users: Iterable[User]) -> str:
    """Return the content of the file from which the server reads its users."""
    return "".join(f"{user.name}:{hash_password(user.password)}:{user.rights};\n" for user in users)


def hash_password(password: str) -> str:
    """Return the hash of Pravega's StrongPasswordProcessor for a password, without a JVM."""
    salt = secrets.token_bytes(_SALT_BYTES)
    key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS, _KEY_BYTES)
    return f"{_ITERATIONS}:{salt.hex()}:{key.hex()}".encode().hex()
