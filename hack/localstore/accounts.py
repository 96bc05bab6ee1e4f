"""The accounts file of a Pravega with basic authentication."""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

# The parameters Pravega's password handler is built with; the count is stored with the hash, the
# algorithm and the length are not. It hashes at each call. With the usual 5,000 rounds that takes
# three quarters of what a store with logins uses of the processors, and these passwords are known.
_ITERATIONS = 1
_KEY_BYTES = 64
_SALT_BYTES = 32


@dataclass(frozen=True)
class User:
    """One account.

    Attributes:
        name: Login name.
        password: In the clear; it is a test's.
        rights: Access control list in Pravega's notation.
    """

    name: str
    password: str
    rights: str


ADMIN = User("admin", "1111_aaaa", "prn::*,READ_UPDATE")
READER = User("reader", "2222_bbbb", "prn::*,READ")


def accounts_file(users: Iterable[User]) -> str:
    """Writes the content of the file that the server reads its users from."""
    return "".join(f"{user.name}:{hash_password(user.password)}:{user.rights};\n" for user in users)


def hash_password(password: str) -> str:
    """Hashes a password as Pravega's StrongPasswordProcessor does, without starting a JVM."""
    salt = secrets.token_bytes(_SALT_BYTES)
    key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS, _KEY_BYTES)
    return f"{_ITERATIONS}:{salt.hex()}:{key.hex()}".encode().hex()
