import { describe } from "@jest/globals";
import { describeCompare } from "./dashboard/compare.ts";
import { describeConnect } from "./dashboard/connect.ts";
import { describeCreates } from "./dashboard/create-once.ts";
import { describeDashboard } from "./dashboard/describe-dashboard.ts";
import { describeFlags } from "./dashboard/flags.ts";
import { describeHistory } from "./dashboard/history.ts";
import { describeKeys } from "./dashboard/keys.ts";
import { describeNarrow } from "./dashboard/narrow.ts";
import { describeSchedules } from "./dashboard/schedules.ts";
import { describeTargetingEditor } from "./dashboard/targeting.ts";
import { describeUnsaved } from "./dashboard/unsaved.ts";
import { describeUsage } from "./dashboard/usage.ts";
import { describeWebhooks } from "./dashboard/webhooks.ts";

describeDashboard("given one person at the dashboard", (given) => {
  describe("the list of flags", () => describeFlags(given));
  describe("the targeting of a flag", () => describeTargetingEditor(given));
  describe("the history", () => describeHistory(given));
  describe("schedules", () => describeSchedules(given));
  describe("the comparison of environments", () => describeCompare(given));
  describe("webhooks", () => describeWebhooks(given));
  describe("usage", () => describeUsage(given));
  describe("API keys", () => describeKeys(given));
  describe("connecting an application", () => describeConnect(given));
  describe("unsaved work", () => describeUnsaved(given));
  describe("creates", () => describeCreates(given));
  describe("narrow screens", () => describeNarrow(given));
});
