import { isIPv6 } from "node:net";

/**
 * Returns the block of addresses that rate limits count together. Networks assign IPv6 addresses in blocks of /64
 * (RFC 6177), so one client has 2^64 of them. An IPv4 address is its own block, even if a dual-stack listener reports
 * it as an IPv6 address.
 */
export function addressBlock(address: string): string {
  if (!isIPv6(address)) return address;
  const groups = groupsOf(address);
  if (groups.slice(0, ipv4At).join(":") === "0:0:0:0:0:ffff") return ipv4Of(groups.slice(ipv4At));
  return `${groups.slice(0, groupsOfBlock).join(":")}::/64`;
}

const groupCount = 8;
const groupsOfBlock = 4;
const ipv4At = 6;

/** Returns all eight groups of an IPv6 address, in hexadecimal without leading zeros. */
function groupsOf(address: string): string[] {
  const [withoutZone = ""] = address.split("%");
  // The host of a URL is normalized to the shortest form, without an embedded IPv4 address.
  const short = new URL(`http://[${withoutZone}]`).hostname.slice(1, -1);
  const [before = [], after = []] = short
    .split("::")
    .map((part) => (part === "" ? [] : part.split(":")));
  const zeros = Array<string>(groupCount - before.length - after.length).fill("0");
  return [...before, ...zeros, ...after];
}

function ipv4Of(groups: readonly string[]): string {
  return groups
    .map((group) => Number.parseInt(group, 16))
    .flatMap((pair) => [pair >> 8, pair & 0xff])
    .join(".");
}
