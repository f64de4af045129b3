import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { Logger } from "pino";

/** Rules for targets. `allowPrivate` also applies to the addresses that a name resolves to. */
export type TargetRules = { httpsOnly: boolean; allowPrivate: boolean };

/** Maximum length of a host name (RFC 1035, 2.3.4) in dotted form. */
const maxHostLength = 253;

/**
 * Parses and checks the URL of a webhook. The result covers addresses in the URL. The addresses of a name are checked
 * when a request is sent.
 *
 * The URL parser accepts several spellings: `0x7f.1` is `127.0.0.1`, a backslash is a slash, and line breaks are
 * removed. The check uses the parsed host, which is also the host of the connection. Spellings that can only mislead a
 * reader are rejected before parsing.
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
  if (host.length > maxHostLength) return `must have a host of ${maxHostLength} characters at most`;
  // The HTTP client uses this host name for Unix domain sockets, which it must not open.
  if (host === "unix") return "must not have the host unix";
  if (rules.allowPrivate) return undefined;
  if (isLocalName(host) || (isIP(host) !== 0 && !isPublicAddress(host)))
    return "must have a public host";
  return undefined;
}

/** Returns the host without the brackets of an IPv6 address and without a trailing dot. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/gu, "").replace(/\.$/u, "");
}

/** Returns whether a name always means the local machine (RFC 6761, 6.3). */
const isLocalName = (host: string): boolean => host === "localhost" || host.endsWith(".localhost");

/**
 * Ports of other protocols: an HTTP request to one of them could carry commands. They are the bad ports of
 * the Fetch standard (https://fetch.spec.whatwg.org/#port-blocking) and, below, ports of databases and caches.
 * They are blocked on public and private hosts.
 */
const badPorts = [
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
  103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
  512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
  995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668,
  6669, 6679, 6697, 10080,
];
/** PostgreSQL, Redis, Elasticsearch, memcached and MongoDB. */
const databasePorts = [5432, 6379, 9200, 11211, 27017];

export const blockedPorts: ReadonlySet<number> = new Set([...badPorts, ...databasePorts]);

/** Returns the rules for targets. Logs a warning if production allows private targets. */
export function chooseTargetRules(options: {
  isProduction: boolean;
  allowPrivate: boolean;
  logger: Logger;
}): TargetRules {
  const { isProduction, allowPrivate, logger } = options;
  if (isProduction && allowPrivate)
    logger.warn(
      "WEBHOOK_ALLOW_PRIVATE_TARGETS is enabled in production: anyone with a server key can send https requests into the network of this process; set it to false unless all customers are your own people",
    );
  return { httpsOnly: isProduction, allowPrivate };
}

/** The range of global unicast addresses (RFC 4291, 2.4): `2000::/3`. */
const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Public addresses that only the machines of a cloud can reach: the agent and name server of Azure
 * (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
 */
const cloudInternal = new Set(["168.63.129.16"]);

/**
 * Returns whether an address is public: unicast and outside all special-purpose ranges
 * (https://www.iana.org/assignments/iana-ipv4-special-registry,
 * https://www.iana.org/assignments/iana-ipv6-special-registry). IPv6 addresses that embed an IPv4 address
 * (IPv4-mapped, NAT64, 6to4, Teredo) are not public, because the local network decides how to translate them.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== "unicast") return false;
  if (address instanceof ipaddr.IPv6) return address.match(globalUnicast);
  return !cloudInternal.has(address.toString());
}
