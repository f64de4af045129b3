import { isIPv6 } from "node:net";

/**
 * Whom an address is counted as. A network hands out IPv6 addresses by the /64 (RFC 6177), so whoever has
 * one has 2^64 of them; such a block counts as one. An IPv4 address counts for itself, also where it is
 * written as an IPv6 address, as a listener on both tells of it.
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

/** All eight, in hexadecimal without leading zeros. */
function groupsOf(address: string): string[] {
  const [withoutZone = ""] = address.split("%");
  // A URL's host is written in the one short form, without an IPv4 address in it.
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
