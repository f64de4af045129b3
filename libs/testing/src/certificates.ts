import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** Paths of PEM files: an authority, and a certificate that it signed for 127.0.0.1 and localhost. */
export type Certificates = { caFile: string; certFile: string; keyFile: string };

/**
 * Creates an authority and a server certificate in `directory` with openssl. The authority is valid for a day, and so is
 * the certificate unless its number of days is given; with -1, it ended yesterday.
 */
export function makeCertificates(directory: string, { days = 1 } = {}): Certificates {
  const file = (name: string) => join(directory, name);
  const openssl = (command: string) =>
    execFileSync("openssl", command.split(" "), { cwd: directory, stdio: "ignore" });
  const newKey = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1";
  writeFileSync(file("san"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
  openssl(`${newKey} -x509 -subj /CN=authority -keyout ca.key -out ca.crt`);
  openssl(`${newKey} -subj /CN=localhost -keyout server.key -out server.csr`);
  openssl(
    `x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days ${days} -extfile san -out server.crt`,
  );
  return { caFile: file("ca.crt"), certFile: file("server.crt"), keyFile: file("server.key") };
}
