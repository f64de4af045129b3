import ipaddr from "ipaddr.js";

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
