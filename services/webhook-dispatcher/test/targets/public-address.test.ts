import { describe, expect, it } from "@jest/globals";
import ipaddr from "ipaddr.js";
import { isPublicAddress } from "../../src/targets/target.ts";

/** The ranges of https://www.iana.org/assignments/iana-ipv4-special-registry, multicast, and Azure's agent. */
const specialV4: [range: string, purpose: string][] = [
  ["0.0.0.0/8", "this network"],
  ["0.0.0.0/32", "this host on this network"],
  ["10.0.0.0/8", "private use"],
  ["100.64.0.0/10", "shared address space of carriers"],
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "link local, where clouds have their metadata"],
  ["172.16.0.0/12", "private use"],
  ["192.0.0.0/24", "IETF protocol assignments"],
  ["192.0.0.0/29", "IPv4 service continuity prefix"],
  ["192.0.0.8/32", "IPv4 dummy address"],
  ["192.0.0.9/32", "port control protocol anycast"],
  ["192.0.0.10/32", "traversal using relays around NAT anycast"],
  ["192.0.0.170/31", "NAT64/DNS64 discovery"],
  ["192.0.2.0/24", "documentation (TEST-NET-1)"],
  ["192.31.196.0/24", "AS112-v4"],
  ["192.52.193.0/24", "AMT"],
  ["192.88.99.0/24", "deprecated (6to4 relay anycast)"],
  ["192.168.0.0/16", "private use"],
  ["192.175.48.0/24", "direct delegation AS112 service"],
  ["198.18.0.0/15", "benchmarking"],
  ["198.51.100.0/24", "documentation (TEST-NET-2)"],
  ["203.0.113.0/24", "documentation (TEST-NET-3)"],
  ["224.0.0.0/4", "multicast"],
  ["240.0.0.0/4", "reserved"],
  ["255.255.255.255/32", "limited broadcast"],
  ["168.63.129.16/32", "Azure's agent"],
];

/** The ranges of https://www.iana.org/assignments/iana-ipv6-special-registry, and ranges outside global unicast. */
const specialV6: [range: string, purpose: string][] = [
  ["::1/128", "loopback"],
  ["::/128", "unspecified"],
  ["::/96", "IPv4-compatible"],
  ["::ffff:0:0/96", "IPv4-mapped"],
  ["::ffff:0:0:0/96", "IPv4-translated"],
  ["64:ff9b::/96", "NAT64"],
  ["64:ff9b:1::/48", "NAT64 of local use"],
  ["100::/64", "discard only"],
  ["100:0:0:1::/64", "dummy prefix"],
  ["2001::/23", "IETF protocol assignments"],
  ["2001::/32", "Teredo"],
  ["2001:1::1/128", "port control protocol anycast"],
  ["2001:1::2/128", "traversal using relays around NAT anycast"],
  ["2001:1::3/128", "DNS-SD service registration anycast"],
  ["2001:2::/48", "benchmarking"],
  ["2001:3::/32", "AMT"],
  ["2001:4:112::/48", "AS112-v6"],
  ["2001:10::/28", "deprecated (ORCHID)"],
  ["2001:20::/28", "ORCHIDv2"],
  ["2001:30::/28", "drone remote id protocol"],
  ["2001:db8::/32", "documentation"],
  ["2002::/16", "6to4"],
  ["2620:4f:8000::/48", "direct delegation AS112 service"],
  ["3fff::/20", "documentation"],
  ["4000::/3", "not assigned"],
  ["5f00::/16", "segment routing"],
  ["fc00::/7", "unique local, where clouds have their metadata too"],
  ["fe80::/10", "link local"],
  ["fec0::/10", "deprecated (site local)"],
  ["ff00::/8", "multicast"],
];

const publicV4 = [
  ["1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"],
  ["128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0"],
  ["192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.114.0"],
  ["223.255.255.255", "8.8.8.8", "168.63.129.15", "168.63.129.17"],
].flat();
const publicV6 = [
  ["2001:200::", "2001:4860:4860::8888", "2001:db7:ffff::1", "2001:db9::", "2003::1"],
  ["2606:4700:4700::1111", "2620:4f:7fff::1", "2a00:1450:4001:81b::200e", "3ffe:ffff::1"],
].flat();

const firstAndLast = (range: string): string[] => {
  const family = range.includes(":") ? ipaddr.IPv6 : ipaddr.IPv4;
  return [family.networkAddressFromCIDR(range), family.broadcastAddressFromCIDR(range)].map(String);
};

describe("public addresses", () => {
  it.each([...specialV4, ...specialV6])("are outside %s: %s", (range) => {
    expect(firstAndLast(range).filter(isPublicAddress)).toEqual([]);
  });

  it.each([...publicV4, ...publicV6])("include %s", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  /** A translator in the network could route each of these to the embedded IPv4 address. */
  it.each([
    ["IPv4-mapped", (hex: string) => `::ffff:${hex}`],
    ["IPv4-compatible", (hex: string) => `::${hex}`],
    ["NAT64", (hex: string) => `64:ff9b::${hex}`],
    ["NAT64 of local use", (hex: string) => `64:ff9b:1::${hex}`],
    ["6to4", (hex: string) => `2002:${hex}::1`],
    ["Teredo", (hex: string) => `2001:0:${hex}::1`],
  ])("do not include embedded IPv4 addresses: %s", (_, embed) => {
    const targets = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "8.8.8.8"].map((address) => {
      const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
      return embed(`${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`);
    });
    expect(targets.filter(isPublicAddress)).toEqual([]);
  });

  it.each(["", "example.com", "1.2.3.4.5", "8.8.8.8/32", "[2003::1]"])(
    "do not include %j, which is not an address",
    (text) => {
      expect(isPublicAddress(text)).toBe(false);
    },
  );
});
