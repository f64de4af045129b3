import { BlockList, isIP } from "node:net";

/** Creates a predicate for addresses of trusted proxies, whose headers about the origin of a request are used. */
export function createTrustedPeers(
  addressesOrRanges: readonly string[],
): (address: string) => boolean {
  if (addressesOrRanges.length === 0) return () => false;
  const list = new BlockList();
  for (const item of addressesOrRanges) {
    const [address = "", prefix] = item.split("/");
    const family = familyOf(address);
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  // `BlockList` treats ::ffff:192.0.2.1 as 192.0.2.1.
  return (address) => list.check(address, familyOf(address));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}
