import { type Client, createClient } from "@halyard/server-sdk";
import { eventually, type ServiceProcess } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { awaitReady, type Edge, type System } from "../../src/system/system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";
import { onThisMachine } from "../../src/traffic/promised-time.ts";

type Given = { system: System };

/** Time within which an SDK without a stream is current again after an edge can be reached. */
const reconnectsWithinMs = 6_000;
/** Time after which an SDK ends the stream of an edge that sends nothing. */
const hangDetectedWithinMs = 8_000;
/** HAProxy checks an edge that is down every 250 ms. */
const checkedWithinMs = 500;

const silent = { info() {}, warn() {}, error() {} };

/** A client of the server SDK with an open stream through HAProxy while edges restart and hang. */
export function describeHaproxyStory(given: () => Given): void {
  let tenant: Tenant;
  let haproxy: ServiceProcess;
  let client: Client;
  let created = 0;

  beforeAll(async () => {
    const { system } = given();
    tenant = await createTenant(system.managements[0]?.url ?? "", { name: "HAProxy" });
    haproxy = await system.startGateway({ proxy: "haproxy" });
    const options = { baseUrl: haproxy.url, serverKey: tenant.serverKey, logger: silent };
    client = createClient(options);
    expect(await client.ready({ timeoutMs: 20_000 })).toBe(true);
    expect(client.status.connection).toBe("streaming");
  });
  afterAll(() => client?.close());

  /** Returns the edges to which HAProxy forwards a stream. It forwards no other requests. */
  async function edgesWithStreams(): Promise<Edge[]> {
    const metrics = await (await fetch(`${haproxy.metricsUrl}/metrics`)).text();
    return given().system.edges.filter((_, index) =>
      metrics.includes(
        `haproxy_server_current_sessions{proxy="sdk-edge",server="process-${index + 1}"} 1`,
      ),
    );
  }

  /** Creates a flag, and waits until the client has it. */
  async function awaitChange(withinMs: number): Promise<void> {
    created += 1;
    const key = `flag-${created}`;
    await must(`${given().system.managements[0]?.url}/api/v1/flags`, {
      ...{ method: "POST", key: tenant.serverKey, body: { key, name: key } },
    });
    await eventually(() => client.explain(key), {
      until: (found) => found !== undefined,
      withinMs,
    });
    expect(client.status).toMatchObject({ current: true, source: "stream" });
  }

  const onIdleEdges = (promisedMs: number) =>
    onThisMachine(promisedMs, () => fetch(`${haproxy.url}/healthz`));

  it("is current within 6 s after its edge has started again", async () => {
    const { edges } = given().system;
    const withinMs = await onIdleEdges(reconnectsWithinMs + checkedWithinMs);
    await Promise.all(edges.map(({ process }) => process.kill()));
    await eventually(() => client.status.current, { until: (current) => !current });
    await Promise.all(edges.map((edge) => edge.start()));
    await awaitChange(withinMs);
  });

  it("opens its stream at another edge while its edge hangs", async () => {
    const withinMs = await onIdleEdges(hangDetectedWithinMs + reconnectsWithinMs);
    const [hanging] = (await eventually(edgesWithStreams, {
      until: ({ length }) => length === 1,
    })) as [Edge];
    hanging.process.signal("SIGSTOP");
    try {
      await awaitChange(withinMs);
      // HAProxy can still count the session with the hanging edge, which the client has left.
      const others = (await edgesWithStreams()).filter((edge) => edge !== hanging);
      expect(others).toHaveLength(1);
    } finally {
      hanging.process.signal("SIGCONT");
    }
    await awaitReady(hanging);
  });
}
