import { afterAll, beforeAll, describe } from "@jest/globals";
import { type PageSystem, startPageSystem } from "../../src/stories/page-system.ts";
import { describeAudiences } from "./audiences-page.ts";
import { describeChangeRequests } from "./change-requests-page.ts";
import { describeProduction } from "./deployment-page.ts";
import { describeOpenFeature } from "./openfeature-page.ts";
import { describeRequirements } from "./requirements-page.ts";
import { describeTargeting } from "./targeting-page.ts";
import { describeTime } from "./time-pages.ts";
import { describeUsage } from "./usage-page.ts";
import { describeValues } from "./values-page.ts";
import { describeWebhooks } from "./webhooks-page.ts";

/** Follows several pages in one running system. */
let pages: PageSystem;
const given = () => pages;
beforeAll(async () => {
  pages = await startPageSystem();
});
afterAll(() => pages?.close());

describe("the page about change requests", () => describeChangeRequests(given));
describe("the page about deployment", () => describeProduction(given));
describe("the page about OpenFeature", () => describeOpenFeature(given));
describe("the page about requirements", () => describeRequirements(given));
describe("the page about targeting", () => describeTargeting(given));
describe("the pages about schedules and the history", () => describeTime(given));
describe("the page about usage", () => describeUsage(given));
describe("the page about values", () => describeValues(given));
describe("the page about audiences", () => describeAudiences(given));
describe("the page about webhooks", () => describeWebhooks(given));
