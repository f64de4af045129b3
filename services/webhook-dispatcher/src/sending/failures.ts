import { protocolSwitched } from "./exchange.ts";
import { lookupCodes } from "./names.ts";

const notAllowed = "address not allowed";
/** One for both: which names there are in the network around this service is nobody's business. */
const noPublicAddress = "the name does not lead to a public address";

/** What went wrong, for the people who look at their webhook's attempts, by the error's code. */
const wordsByCode: Readonly<Record<string, string>> = {
  [lookupCodes.notFound]: noPublicAddress,
  [lookupCodes.failed]: "name look-up failed",
  [lookupCodes.timedOut]: "name look-up timed out",
  [lookupCodes.notAllowed]: noPublicAddress,
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection closed early",
  EPIPE: "connection closed early",
  ERR_HTTP_CONTENT_LENGTH_MISMATCH: "connection closed early",
  ETIMEDOUT: "connection timed out",
  EHOSTUNREACH: "host unreachable",
  ENETUNREACH: "network unreachable",
  EADDRNOTAVAIL: "network unreachable",
  [protocolSwitched]: "target switched to another protocol",
  EPROTO: "TLS: handshake failed",
  ERR_TLS_CERT_ALTNAME_INVALID: "TLS: certificate is for another name",
  CERT_HAS_EXPIRED: "TLS: certificate has expired",
  CERT_NOT_YET_VALID: "TLS: certificate is not valid yet",
  CERT_REVOKED: "TLS: certificate was revoked",
  DEPTH_ZERO_SELF_SIGNED_CERT: "TLS: self-signed certificate",
  SELF_SIGNED_CERT_IN_CHAIN: "TLS: self-signed certificate in the chain",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "TLS: certificate chain is incomplete",
  UNABLE_TO_GET_ISSUER_CERT: "TLS: certificate of an unknown issuer",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "TLS: certificate of an unknown issuer",
};

/** Codes come in families; these are what is left of them. */
const wordsByPrefix: readonly (readonly [prefix: string, words: string])[] = [
  ["ERR_SSL_", "TLS: handshake failed"],
  ["ERR_TLS_", "TLS: handshake failed"],
  ["CERT_", "TLS: certificate not valid"],
  ["HPE_", "answer is not HTTP"],
];

export const failureWords = {
  notAllowed,
  timeOut: (afterMs: number) => `time-out after ${afterMs / 1000} s`,
  calledOff: "called off",
  /** A code that nobody has words for yet is shown as it is, which is more than a guess. */
  ofCode: (code: string): string =>
    wordsByCode[code] ??
    wordsByPrefix.find(([prefix]) => code.startsWith(prefix))?.[1] ??
    `request failed (${code})`,
} as const;

/** Codes of what took as long as it may, though not the whole time of an attempt. */
const timeOutCodes: ReadonlySet<string> = new Set(["ETIMEDOUT", lookupCodes.timedOut]);

export const isTimeOut = (code: string): boolean => timeOutCodes.has(code);
