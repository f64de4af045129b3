import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export type TestCertificate = { cert: string; key: string };

/** Creates a self-signed certificate for one name with the `openssl` command. */
export async function makeTestCertificate(name: string): Promise<TestCertificate> {
  const directory = await mkdtemp(join(tmpdir(), "halyard-certificate-"));
  const [certPath, keyPath] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  try {
    const request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
    const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`];
    const files = ["-out", certPath, "-keyout", keyPath];
    await promisify(execFile)("openssl", [...request, ...subject, ...files]);
    return { cert: await readFile(certPath, "utf8"), key: await readFile(keyPath, "utf8") };
  } finally {
    await rm(directory, { recursive: true });
  }
}
