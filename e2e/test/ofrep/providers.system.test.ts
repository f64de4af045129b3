import type { ServiceProcess } from "@halyard/testing";
import { afterAll, beforeAll, describe } from "@jest/globals";
import { startOpenFeatureSystem } from "../../src/system/openfeature.ts";
import type { System } from "../../src/system/system.ts";
import { describeBrowser } from "../clients/browser.ts";
import { describeBrowserProvider } from "./browser-provider.ts";
import { describeComingBack } from "./coming-back.ts";
import { describeHalyardProviders } from "./halyard-providers.ts";
import { describePythonProvider } from "./python-provider.ts";
import { describeServerProvider } from "./server-provider.ts";
import { describeTypedFlags } from "./typed-flags.ts";
import { describeWebProvider } from "./web-provider.ts";

/** Tests of OpenFeature's OFREP providers, of Halyard's own providers and of a plain page in one running system. Each module has its own tenant. */
let system: System;
let gateway: ServiceProcess;
const given = () => ({ system, gateway });
beforeAll(async () => {
  system = await startOpenFeatureSystem();
  gateway = await system.startGateway();
});
afterAll(() => system?.close());

describe("the provider for servers", () => describeServerProvider(given));
describe("the provider for browsers", () => describeWebProvider(given));
describe("the provider for browsers on pages that are opened again", () =>
  describeComingBack(given));
describe("the provider for browsers in a browser", () => describeBrowserProvider(given));
describe("a page of another origin", () => describeBrowser(given));
describe("the providers for servers and browsers", () => describeTypedFlags(given));
describe("Halyard's providers", () => describeHalyardProviders(given));
describe("the provider for Python", () => describePythonProvider(given));
