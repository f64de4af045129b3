import { describe } from "@jest/globals";
import { describeDashboard } from "./dashboard/describe-dashboard.ts";
import { describeFaults } from "./dashboard/faults.ts";
import { describeLive } from "./dashboard/live.ts";
import { describeOperator } from "./dashboard/operator.ts";
import { describeSignIn } from "./dashboard/sign-in.ts";
import { describeTwoPeople } from "./dashboard/two-people.ts";

describeDashboard("given several people and processes behind the dashboard", (given) => {
  describe("signing in", () => describeSignIn(given));
  describe("changes by other people", () => describeLive(given));
  describe("two people at the same time", () => describeTwoPeople(given));
  describe("the pages of the operator", () => describeOperator(given));
  // The last, because it kills processes.
  describe("faults", () => describeFaults(given));
});
