import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { Logger } from "pino";

/** What a target may be; the address check applies to what a name resolves to as well. */
export type TargetRules = { httpsOnly: boolean; allowPrivate: boolean };

/** The longest name that a host can have (RFC 1035, 2.3.4), in the dotted form. */
const maxHostLength = 253;

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
  if (host.length > maxHostLength) return `must have a host of ${maxHostLength} characters at most`;
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

/** Where webhooks may go, by how this process is run. What is meant for development is told in production. */
export function chooseTargetRules(options: {
  isProduction: boolean;
  allowPrivate: boolean;
  logger: Logger;
}): TargetRules {
  const { isProduction, allowPrivate, logger } = options;
  if (isProduction && allowPrivate)
    logger.warn(
      "WEBHOOK_ALLOW_PRIVATE_TARGETS is on in production: whoever has a server key can reach what this process reaches, over https; unless all customers are your own people, set it to false",
    );
  return { httpsOnly: isProduction, allowPrivate };
}

/** What the internet assigns addresses from at all (RFC 4291, 2.4): `2000::/3`. */
const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Public addresses that answer a cloud's own machines only, with what is meant for nobody else:
 * Azure's agent and name server
 * (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
 */
const cloudInternal = new Set(["168.63.129.16"]);

/**
 * Whether an address is one of the public internet: unicast, and in none of the ranges that are set aside
 * for a special purpose (https://www.iana.org/assignments/iana-ipv4-special-registry,
 * https://www.iana.org/assignments/iana-ipv6-special-registry). Addresses of IPv6 that carry one of IPv4,
 * such as IPv4-mapped ones or those of NAT64, 6to4 and Teredo, are none, whatever they carry: what
 * translates them, and to where, is for the network that we run in to say.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address.range() !== "unicast") return false;
  if (address instanceof ipaddr.IPv6) return address.match(globalUnicast);
  return !cloudInternal.has(address.toString());
}
