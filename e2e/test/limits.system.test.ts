import type { ServiceProcess } from "@halyard/testing";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { type System, startSystem } from "../src/system/system.ts";
import { plansText } from "../src/system/tenancy.ts";
import { describeStreamLimits, streamPlans } from "./limits/streams.ts";
import { describeUsageLimits, usagePlans } from "./limits/usage.ts";
import { describeWithoutMetering } from "./limits/without-metering.ts";

describe("given four edges, and a metering that starts later", () => {
  let system: System;
  let gateway: ServiceProcess;
  const given = () => ({ system, gateway });
  beforeAll(async () => {
    system = await startSystem({
      managements: 1,
      edges: 4,
      settings: () => ({
        management: { PLANS: plansText({ ...usagePlans, ...streamPlans }) },
        "sdk-edge": { STREAM_TOKEN_SECRET: "a secret that all edges here share" },
      }),
    });
  });
  afterAll(() => system?.close());

  describe("which has not started yet", () => describeWithoutMetering(given));
  describe("which runs behind a gateway", () => {
    beforeAll(async () => {
      gateway = await system.startGateway({ proxy: "haproxy" });
    });

    describe("and a plan of a few requests", () => describeUsageLimits(given));
    describe("and a plan of 25 streams", () => describeStreamLimits(given));
  });
});
