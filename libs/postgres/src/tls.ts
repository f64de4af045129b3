import { readFileSync } from "node:fs";
import { ConfigurationError } from "@halyard/service";

/** TLS settings of a connection. `ca` is a certificate in PEM that replaces the system's authorities. */
export type Tls = { mode: TlsMode; ca?: string };
export type TlsMode = "off" | "unverified" | "verified";

/**
 * Separates the TLS parameters `sslmode` and `sslrootcert`, as libpq names them, from a PostgreSQL URL.
 * The client library would send `sslrootcert` to the server, which rejects it as an unknown setting.
 * Throws a `ConfigurationError` when the file that `sslrootcert` names cannot be read.
 */
export function splitTls(address: string): { url: string; tls: Tls } {
  const url = new URL(address);
  const sslmode = url.searchParams.get("sslmode") ?? "disable";
  const rootCertificate = url.searchParams.get("sslrootcert");
  url.searchParams.delete("sslmode");
  url.searchParams.delete("sslrootcert");
  const tls: Tls =
    rootCertificate === null || sslmode === "disable"
      ? { mode: modeOf(sslmode) }
      : { mode: "verified", ca: readCertificate(rootCertificate) };
  return { url: url.href, tls };
}

function readCertificate(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new ConfigurationError([
      `The address of the database names the file ${file} in sslrootcert, which this process cannot read.`,
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
