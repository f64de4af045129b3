import { afterAll, describe } from "@jest/globals";
import { startSystem } from "../src/system/system.ts";
import { describeHostileContexts } from "./clients/hostile-contexts.ts";
import { describeIsolation } from "./clients/isolation.ts";
import { describeStories } from "./clients/stories.ts";
import { describeTargeting } from "./clients/targeting.ts";
import { describeTime } from "./clients/time.ts";
import { describeWebhooks } from "./clients/webhooks.ts";

/** Tests of clients in one running system. Each module has its own tenants. */
const system = await startSystem({
  managements: 2,
  schedulers: 2,
  dispatchers: 1,
  meterings: 1,
  edges: 2,
});
afterAll(() => system.close());
const given = { system, gateway: await system.startGateway() };

describe("given processes of every service behind a gateway", () => {
  // This module is first, because it compares the stored data before and after its requests.
  describe("two organizations, and two projects in one of them", () => describeIsolation(given));
  // This module is second, because its edge must not have logged errors before.
  describe("flags whose rules receive hostile contexts", () => describeHostileContexts(given));
  describe("a flag and its clients", () => describeStories(given));
  describe("targeting", () => describeTargeting(given));
  describe("schedules", () => describeTime(given));
  describe("a webhook for all events", () => describeWebhooks(given));
});
