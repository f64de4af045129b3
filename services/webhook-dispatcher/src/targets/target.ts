import { isIP } from "node:net";
import { blockedPorts } from "./blocked-ports.ts";
import { isPublicAddress } from "./public-address.ts";

/** What a target may be; the address check applies to what a name resolves to as well. */
export type TargetRules = { httpsOnly: boolean; allowPrivate: boolean };

/** The longest name that a host can have (RFC 1035, 2.3.4), in the dotted form. */
const longestHost = 253;

/**
 * Reads where a webhook wants its deliveries. Whether the host's name resolves to public addresses shows
 * only when something is sent; the problem of an address that stands in the URL itself is told here.
 *
 * The parser of the platform takes many spellings for the same (`0x7f.1` is `127.0.0.1`, a backslash is a
 * slash, line breaks vanish). Hosts are judged by what it made of them, and that is what is connected to;
 * the spellings that only serve to mislead a reader are refused before.
 */
export function readTarget(
  text: string,
  rules: TargetRules,
): { url: URL; problem?: never } | { problem: string; url?: never } {
  const problem = problemOfText(text);
  if (problem !== undefined) return { problem };
  const url = URL.parse(text);
  if (url === null) return { problem: "is not a valid URL" };
  const problemOfParts = problemOfUrl(url, rules);
  return problemOfParts === undefined ? { url } : { problem: problemOfParts };
}

function problemOfText(text: string): string | undefined {
  if (/[\s\p{Cc}\\]/u.test(text))
    return "must not contain spaces, control characters or backslashes";
  const [, authority] = /^https?:\/\/([^/?#]*)/iu.exec(text) ?? [];
  if (authority === undefined) return "must be an absolute URL that begins with https://";
  if (authority === "") return "must have a host";
  if (authority.includes("@")) return "must not contain a user name or password";
  if (text.includes("#")) return "must not have a fragment, which would not be sent";
  return undefined;
}

function problemOfUrl(url: URL, rules: TargetRules): string | undefined {
  if (rules.httpsOnly && url.protocol !== "https:") return "must begin with https://";
  if (url.port === "0") return "must not have the port 0";
  if (blockedPorts.has(Number(url.port)))
    return `must not have the port ${url.port}, which belongs to another protocol`;
  const host = hostOf(url);
  if (host.length > longestHost) return `must have a host of ${longestHost} characters at most`;
  // The way in which the HTTP client spells sockets of the file system, which it is not to open.
  if (host === "unix") return "must not have the host unix";
  if (rules.allowPrivate) return undefined;
  if (isLocalName(host) || (isIP(host) !== 0 && !isPublicAddress(host)))
    return "must have a public host";
  return undefined;
}

/** The host as names and addresses are written everywhere else: no brackets, no dot at the end. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/gu, "").replace(/\.$/u, "");
}

/** Names that mean the machine itself wherever they are resolved (RFC 6761, 6.3). */
const isLocalName = (host: string): boolean => host === "localhost" || host.endsWith(".localhost");
