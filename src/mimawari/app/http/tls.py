"""The certificate that the API is served with: loaded, checked, and shown by the doctor."""

import ssl
from datetime import datetime

from cryptography import x509

from mimawari.edges.checks import Check
from mimawari.errors import BadInput
from mimawari.settings import Settings

LEAST = ssl.TLSVersion.TLSv1_2
CERT, KEY = "MIMAWARI_TLS_CERT", "MIMAWARI_TLS_KEY"
_MISMATCH = "KEY_VALUES_MISMATCH"


def load_tls(settings: Settings) -> ssl.SSLContext | None:
    """Return how the API is encrypted; None if it is not. Raise BadInput for unusable files."""
    cert, key = settings.tls_cert, settings.tls_key
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise BadInput(f"{CERT} and {KEY}: set both, or neither", code="bad_certificate")
    for name, path in ((CERT, cert), (KEY, key)):
        try:
            path.read_bytes()
        except OSError as error:
            raise BadInput(
                f"{name}: {path} cannot be read ({error.strerror}); give a PEM file that this"
                " user may read",
                code="bad_certificate",
            ) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = LEAST
    try:
        # With a password, even an empty one, an encrypted key is an error and not a question.
        context.load_cert_chain(cert, key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise BadInput(_explain(error, settings), code="bad_certificate") from error
    return context


def _explain(error: ssl.SSLError | ValueError, settings: Settings) -> str:
    cert, key = settings.tls_cert, settings.tls_key
    if getattr(error, "reason", None) == _MISMATCH:
        return f"{KEY}: {key} is not the key of the certificate {cert}; give the two that belong"
    return (
        f"{CERT} and {KEY}: {cert} and {key} are no certificate and key; give PEM files, the"
        " certificate with its chain, the key without a password"
    )


def check_tls(settings: Settings, now: datetime) -> Check:
    """Check that the API's certificate can be used, and until when."""
    try:
        if load_tls(settings) is None:
            return Check("TLS", ok=True, found="not used: put a proxy with TLS before the API")
    except BadInput as error:
        return Check("TLS", ok=False, found="cannot be used", advice=str(error))
    path = settings.tls_cert
    assert path is not None  # noqa: S101 - it was loaded just now
    certificate = x509.load_pem_x509_certificates(path.read_bytes())[0]
    until = certificate.not_valid_after_utc
    found = f"{path}, until {until:%Y-%m-%d}, TLS 1.2 or newer"
    if not certificate.not_valid_before_utc <= now < until:
        advice = "the certificate is not valid today: renew it and start again"
        return Check("TLS", ok=False, found=found, advice=advice)
    return Check("TLS", ok=True, found=found)
