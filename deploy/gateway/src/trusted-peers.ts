import { BlockList, isIP } from "node:net";

/** Says whether an address is one of the proxies that are believed about where a request came from. */
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
  // A list knows by itself that ::ffff:192.0.2.1 is 192.0.2.1.
  return (address) => list.check(address, familyOf(address));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}
