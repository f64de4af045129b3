import { readFileSync } from "node:fs";
import { ConfigurationError } from "@halyard/configuration";

/** TLS settings of a connection. `ca` is a certificate in PEM that replaces the system's authorities. */
type Tls = { mode: TlsMode; ca?: string };
type TlsMode = "off" | "unverified" | "verified";

/**
 * Separates the parameters `sslmode`, `sslrootcert` and `options` of libpq from a PostgreSQL URL. The client library
 * gives `sslmode` another meaning, and `options` in the URL would replace the options of this module. Throws a
 * `ConfigurationError` if the file in `sslrootcert` cannot be read.
 */
export function splitAddress(address: string): {
  url: string;
  options: string | undefined;
  tls: Tls;
} {
  const url = new URL(address);
  const sslmode = url.searchParams.get("sslmode") ?? "disable";
  const rootCertificate = url.searchParams.get("sslrootcert");
  url.searchParams.delete("sslmode");
  url.searchParams.delete("sslrootcert");
  const options = url.searchParams.get("options") ?? undefined;
  url.searchParams.delete("options");
  const tls: Tls =
    rootCertificate === null || sslmode === "disable"
      ? { mode: modeOf(sslmode) }
      : { mode: "verified", ca: readCertificate(rootCertificate) };
  return { url: url.href, options, tls };
}

function readCertificate(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new ConfigurationError([
      `The file ${file}, which is sslrootcert in the database URL, cannot be read by this process.`,
    ]);
  }
}

function modeOf(sslmode: string): TlsMode {
  switch (sslmode) {
    case "disable":
      return "off";
    case "verify-full":
    case "verify-ca":
      return "verified";
    default:
      return "unverified";
  }
}
