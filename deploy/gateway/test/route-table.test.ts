import { routes, type ServiceName } from "@halyard/contracts";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { findEntry } from "../src/route-table.ts";
import { type GivenGateway, givenGateway, givenUpstream, type Upstream } from "./given-gateway.ts";

/** Every route of the contract lands at its service, by the table and over the wire. */
const upstreams: Upstream[] = [];
let gateway: GivenGateway;

beforeAll(async () => {
  const play = async (name: ServiceName) => {
    const upstream = await givenUpstream((_incoming, response) => response.end(name));
    upstreams.push(upstream);
    return [upstream.origin];
  };
  gateway = await givenGateway({
    management: await play("management"),
    edges: await play("sdk-edge"),
  });
});

afterAll(async () => {
  await gateway.stop();
  for (const upstream of upstreams) await upstream.close();
});

const cases = routes.flatMap(({ method, alsoMethod, path, service }) =>
  [method, alsoMethod].flatMap((each) =>
    each === undefined ? [] : [[each, path, service] as const],
  ),
);

describe("given the routes of the contract", () => {
  it.each(cases)("sends %s %s to %s", async (method, path, service) => {
    const concrete = path.replaceAll(/:\w+/g, "018f0000-0000-7000-8000-000000000001");
    expect(findEntry(concrete)?.service).toBe(service);
    const answered = await fetch(gateway.url + concrete, { method });
    expect(await answered.text()).toBe(service);
  });

  it("takes the first entry that matches", () => {
    const table = [
      { pattern: "/a/b/*", service: "sdk-edge", anyOrigin: true },
      { pattern: "/a/*", service: "management", anyOrigin: false },
    ] as const;
    expect(findEntry("/a/b/c", table)?.service).toBe("sdk-edge");
    expect(findEntry("/a/bc", table)?.service).toBe("management");
    expect(findEntry("/a", table)).toBeUndefined();
  });
});
