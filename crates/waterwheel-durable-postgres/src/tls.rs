//! Encrypted connections.

use std::path::PathBuf;
#[cfg(feature = "tls")]
use std::{error::Error, path::Path, sync::Arc};

/// How connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tls {
    Off,
    /// The certificate of the server has to be signed by one in this file, or by one that the system trusts, and name the host.
    Verified(Option<PathBuf>),
}

/// Takes the options `sslmode` and `sslrootcert` out of the description of a database. Returns the rest.
pub(crate) fn split(config: &str) -> Result<(String, Tls), String> {
    let (mut mode, mut file) = (None, None);
    let mut is_rest = |option: &str| {
        let Some((name, value)) = option.split_once('=') else {
            return true;
        };
        match name {
            "sslmode" => mode = Some(value.to_owned()),
            "sslrootcert" => file = Some(value.to_owned()),
            _ => return true,
        }
        false
    };
    let rest = match config.split_once('?') {
        Some((url, options)) if url.contains("://") => {
            let options: Vec<_> = options.split('&').filter(|it| is_rest(it)).collect();
            format!("{url}?{}", options.join("&"))
        }
        _ if config.contains("://") => config.to_owned(),
        _ => {
            // A value in quotes may have spaces, and none of these has one.
            let options: Vec<_> = config.split(' ').filter(|it| is_rest(it)).collect();
            options.join(" ")
        }
    };
    let file = file.filter(|it| it != "system").map(PathBuf::from);
    let tls = match mode.as_deref() {
        None if file.is_some() => Tls::Verified(file),
        None | Some("disable") => Tls::Off,
        Some("require" | "verify-full") => Tls::Verified(file),
        Some(mode) => {
            return Err(format!(
                "unsupported `sslmode` `{mode}`: use `disable` or `verify-full` (`require` is treated as `verify-full`)"
            ));
        }
    };
    Ok((rest.trim_end_matches('?').to_owned(), tls))
}

/// Creates what encrypts connections. The certificates are read again each time, since they may be replaced.
#[cfg(feature = "tls")]
pub(crate) fn connector(
    file: Option<&Path>,
) -> Result<tokio_postgres_rustls::MakeRustlsConnect, Box<dyn Error>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ClientConfig, RootCertStore};

    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let why = |error| format!("`sslrootcert` {}: {error}", file.display());
            for certificate in CertificateDer::pem_file_iter(file).map_err(why)? {
                roots.add(certificate.map_err(why)?)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    // The process may have another default, or none.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(tokio_postgres_rustls::MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_encryption_are_taken_out() {
        let ca = || Tls::Verified(Some("/ca.pem".into()));
        for (config, rest, tls) in [
            ("postgres://a@b/c", "postgres://a@b/c", Tls::Off),
            (
                "postgres://a@b/c?sslmode=disable",
                "postgres://a@b/c",
                Tls::Off,
            ),
            (
                "postgres://a@b/c?connect_timeout=5&sslmode=require&keepalives=0",
                "postgres://a@b/c?connect_timeout=5&keepalives=0",
                Tls::Verified(None),
            ),
            (
                "postgres://a@b/c?sslmode=verify-full&sslrootcert=/ca.pem",
                "postgres://a@b/c",
                ca(),
            ),
            (
                "host=a sslmode=verify-full password='b  c' sslrootcert=/ca.pem user=d",
                "host=a password='b  c' user=d",
                ca(),
            ),
            ("host=a sslrootcert=/ca.pem", "host=a", ca()),
            (
                "host=a sslmode=verify-full sslrootcert=system",
                "host=a",
                Tls::Verified(None),
            ),
        ] {
            assert_eq!(split(config), Ok((rest.to_owned(), tls)), "{config}");
        }
        for mode in ["prefer", "allow", "verify-ca", "on"] {
            let error = split(&format!("host=a sslmode={mode}")).unwrap_err();
            assert!(error.contains(&format!("`sslmode` `{mode}`: ")), "{error}");
        }
    }
}
