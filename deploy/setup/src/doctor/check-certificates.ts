import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { connect } from "node:tls";
import { type Finding, findingsOf, ok, problem, warning } from "./finding.ts";

const timeoutMs = 5_000;
const soonMs = 21 * 86_400_000;

/**
 * Checks the certificate that a server presents. It also connects to a server that it does not trust, in order to say
 * why, and sends nothing.
 */
export function checkServerCertificate(url: URL, nowMs: number): Promise<Finding[]> {
  return findingsOf("certificates", "Check BASE_URL, and that it has TLS.", async () => {
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const socket = connect({
      ...{ host, port: Number(url.port || 443), rejectUnauthorized: false },
      // An address is no server name.
      ...(isIP(host) === 0 && { servername: host }),
    });
    try {
      await once(socket, "secureConnect", { signal: AbortSignal.timeout(timeoutMs) });
      const end = judgeEnd(url.host, socket.getPeerCertificate().valid_to, nowMs);
      if (socket.authorized || end.status === "problem") return [end];
      const text = `the certificate of ${url.host} is not trusted (${socket.authorizationError})`;
      return [end, problem("certificates", text, untrustedAdvice)];
    } finally {
      socket.destroy();
    }
  });
}

const untrustedAdvice =
  "Give the gateway a certificate for this name, with those of its issuers after it. If your own authority issued it, " +
  "start the doctor with the authority's file in NODE_EXTRA_CA_CERTS.";

/** Checks a file with certificates, such as NATS_TLS_CA_FILE. */
export function checkCertificateFile(file: string, nowMs: number): Promise<Finding[]> {
  const advice = "Check the path, and that the file has certificates in PEM.";
  return findingsOf("certificates", advice, async () => {
    const blocks = readFileSync(file, "utf8").match(
      /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
    );
    if (blocks === null) throw new Error(`${file} has no certificate`);
    return blocks.map((block) => judgeEnd(file, new X509Certificate(block).validTo, nowMs));
  });
}

/** `validTo` is in the form of OpenSSL. */
export function judgeEnd(subject: string, validTo: string, nowMs: number): Finding {
  const end = Date.parse(validTo);
  const text = `the certificate of ${subject} ends on ${new Date(end).toISOString()}`;
  if (end - nowMs > soonMs) return ok("certificates", text);
  const advice = "Renew it. docs/deployment.md describes how the gateway loads it.";
  return end <= nowMs
    ? problem("certificates", text, advice)
    : warning("certificates", text, advice);
}
