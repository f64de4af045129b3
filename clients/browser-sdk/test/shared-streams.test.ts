import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { shareStreams } from "../src/shared-streams.ts";
import { type FakeEdge, startFakeEdge, tagOf } from "./support/fake-edge.ts";
import { closeClients, startClient } from "./support/started-client.ts";

/** Clients in one process share streams as those in the tabs of a browser do. */
let edge: FakeEdge;
beforeAll(async () => {
  edge = await startFakeEdge();
});
beforeEach(() => {
  edge.setFlags({ checkout: false, search: true });
});
afterEach(async () => {
  closeClients();
  edge.answer("stream", undefined);
  await eventually(() => edge.streams().length === 0);
  edge.requests.length = 0;
});
afterAll(() => edge.close());

const startTab = (options: { id?: string } = {}) =>
  startClient({ baseUrl: edge.url, fetch: shareStreams(), context: options });
type Tab = ReturnType<typeof startTab>;

async function startTabs(count: number): Promise<[Tab, ...Tab[]]> {
  const [first, ...others] = Array.from({ length: count }, () => startTab());
  if (first === undefined) throw new Error("at least one tab");
  const all: [Tab, ...Tab[]] = [first, ...others];
  await eventually(() => all.every(({ client }) => client.status.current));
  return all;
}

const streamRequests = () => edge.requests.filter(({ route }) => route === "stream");
const allReceive = (tabs: readonly Tab[], flags: Record<string, boolean>) =>
  eventually(
    () =>
      tabs.every(
        ({ client }) => tagOf({ ...client.allFlags() } as Record<string, boolean>) === tagOf(flags),
      ),
    {
      because: "all tabs have the values",
    },
  );

describe("given tabs of one user", () => {
  it("opens one stream, which gives all tabs the values and the changes", async () => {
    const tabs = await startTabs(8);
    const late = startTab();
    await allReceive([...tabs, late], { checkout: false, search: true });
    edge.setFlags({ checkout: true });
    await allReceive([...tabs, late], { checkout: true });
    expect(streamRequests()).toHaveLength(1);
    expect(edge.requests).toHaveLength(1);
  });

  it("continues in another tab when the leading one closes, and misses no change", async () => {
    const [leader, ...others] = await startTabs(4);
    leader.client.close();
    edge.setFlags({ checkout: true });
    await allReceive(others, { checkout: true });
    expect(streamRequests()).toHaveLength(2);
    expect(streamRequests()[1]?.headers["last-event-id"]).toMatch(/^".+"$/);
    for (const { events } of others)
      expect(events).toEqual(["stream: checkout,search", "current", "stream: checkout,search"]);
  });

  it("reconnects in all tabs with one stream after the edge has ended it", async () => {
    const tabs = await startTabs(3);
    edge.streams()[0]?.end();
    await eventually(() => tabs.every(({ client }) => client.status.connection === "waiting"));
    edge.setFlags({ checkout: true });
    for (const { clock } of tabs) clock.advance(5_000);
    await allReceive(tabs, { checkout: true });
    expect(streamRequests()).toHaveLength(2);
  });

  it("stops all tabs if the key is rejected", async () => {
    edge.answer("stream", { status: 401 });
    const tabs = [startTab(), startTab(), startTab()];
    await eventually(() => tabs.every(({ client }) => client.status.connection === "stopped"));
  });

  it("polls in tabs whose leader is silent", async () => {
    edge.answer("stream", "hang");
    const tab = startTab();
    await eventually(() => streamRequests().length === 1);
    tab.clock.advance(5_000);
    await allReceive([tab], { checkout: false, search: true });
    expect(tab.client.status).toMatchObject({ current: true, source: "poll" });
  });
});

describe("given tabs with typed flags", () => {
  const limits = { value: { seats: 5 }, variation: "small" };
  const blue = { value: "blue", variation: "cold" };

  it("gives all tabs the changed ones when another tab leads, and no others", async () => {
    edge.setFlags({ limits, color: blue });
    const [leader, ...others] = await startTabs(3);
    leader.client.close();
    const red = { value: "red", variation: "warm" };
    edge.setFlags({ limits, color: red });
    await eventually(() => others.every(({ client }) => client.getString("color", "") === "red"));
    for (const { client, events } of others) {
      expect(events).toEqual(["stream: limits,color", "current", "stream: color"]);
      expect(client.allValues()).toEqual({ limits, color: red });
    }
  });
});

describe("given tabs of several users", () => {
  it("opens a stream for each of them, and another one when a tab changes its user", async () => {
    edge.setFlags(({ id }) => ({ checkout: id === "ada" }));
    const [ada, grace, other] = [startTab({ id: "ada" }), startTab({ id: "grace" }), startTab()];
    await allReceive([ada], { checkout: true });
    await allReceive([grace, other], { checkout: false });
    expect(edge.streams()).toHaveLength(3);
    void grace.client.setContext({ id: "ada" });
    await allReceive([ada, grace], { checkout: true });
    await eventually(() => edge.streams().length === 2);
  });
});
