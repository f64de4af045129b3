import type { ServiceProcess } from "@halyard/testing";
import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { ensureDashboard } from "../../deploy/local/src/dashboard-build.ts";
import { signInFileIn } from "../../deploy/local/src/sign-in.ts";
import { type System, startSystem } from "../src/system/system.ts";
import { describeCompare } from "./dashboard/compare.ts";
import { describeCreates } from "./dashboard/create-once.ts";
import { describeFaults } from "./dashboard/faults.ts";
import { describeFlags } from "./dashboard/flags.ts";
import { describeHistory } from "./dashboard/history.ts";
import { describeKeys } from "./dashboard/keys.ts";
import { describeLive } from "./dashboard/live.ts";
import { describeNarrow } from "./dashboard/narrow.ts";
import { describeOperator } from "./dashboard/operator.ts";
import { describeSchedules } from "./dashboard/schedules.ts";
import { describeSignIn } from "./dashboard/sign-in.ts";
import { describeTargetingEditor } from "./dashboard/targeting.ts";
import { describeTwoPeople } from "./dashboard/two-people.ts";
import { describeUnsaved } from "./dashboard/unsaved.ts";
import { describeUsage } from "./dashboard/usage.ts";
import { describeWebhooks } from "./dashboard/webhooks.ts";

/** User stories of the dashboard, in one running system. Each module has its own tenants. */
describeInChromium("given the dashboard of a running system", () => {
  let system: System;
  let gateway: ServiceProcess;
  let browser: Browser;
  const given = () => ({ system, gateway, browser });
  beforeAll(async () => {
    const { folder } = await ensureDashboard();
    system = await startSystem({
      managements: 2,
      schedulers: 1,
      dispatchers: 1,
      meterings: 1,
      edges: 1,
      settings: (directory) => ({
        gateway: { DASHBOARD_DIR: folder, SIGN_IN_FILE: signInFileIn(directory) },
      }),
    });
    gateway = await system.startGateway();
    browser = await startChromium();
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await system?.close();
  });

  describe("signing in", () => describeSignIn(given));
  describe("the list of flags", () => describeFlags(given));
  describe("the targeting of a flag", () => describeTargetingEditor(given));
  describe("the history", () => describeHistory(given));
  describe("changes by other people", () => describeLive(given));
  describe("schedules", () => describeSchedules(given));
  describe("the comparison of environments", () => describeCompare(given));
  describe("webhooks", () => describeWebhooks(given));
  describe("two people at the same time", () => describeTwoPeople(given));
  describe("usage", () => describeUsage(given));
  describe("API keys", () => describeKeys(given));
  describe("unsaved work", () => describeUnsaved(given));
  describe("creates", () => describeCreates(given));
  describe("narrow screens", () => describeNarrow(given));
  describe("the pages of the operator", () => describeOperator(given));
  // The last, because it kills processes.
  describe("faults", () => describeFaults(given));
});
