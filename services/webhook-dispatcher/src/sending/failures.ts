import { lookupCodes } from "./names.ts";
import { protocolSwitched } from "./post.ts";

const notAllowed = "address not allowed";
/** One text for unknown and private names. Otherwise customers could probe the names in the operator's network. */
const noPublicAddress = "the name does not lead to a public address";

/** Descriptions of errors by code, as attempts show them to customers. */
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

/** Descriptions of all other codes with a common prefix. */
const wordsByPrefix: readonly (readonly [prefix: string, words: string])[] = [
  ["ERR_SSL_", "TLS: handshake failed"],
  ["ERR_TLS_", "TLS: handshake failed"],
  ["CERT_", "TLS: certificate not valid"],
  ["HPE_", "answer is not HTTP"],
];

export const failureWords = {
  notAllowed,
  timeOut: (afterMs: number) => `time-out after ${afterMs / 1000} s`,
  cancelled: "cancelled",
  /** Returns the description of a code. An unknown code is included as it is. */
  ofCode: (code: string): string =>
    wordsByCode[code] ??
    wordsByPrefix.find(([prefix]) => code.startsWith(prefix))?.[1] ??
    `request failed (${code})`,
} as const;

/** Codes of a step that timed out before the attempt did. */
const timeOutCodes: ReadonlySet<string> = new Set(["ETIMEDOUT", lookupCodes.timedOut]);

export const isTimeOut = (code: string): boolean => timeOutCodes.has(code);
