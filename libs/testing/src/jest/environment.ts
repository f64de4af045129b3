import type { EnvironmentContext, JestEnvironmentConfig } from "@jest/environment";
import { ModernFakeTimers } from "@jest/fake-timers";
import { TestEnvironment } from "jest-environment-node";
import { ModuleMocker } from "jest-mock";

/** The environment of `runtime.ts`: fake timers and spies replace the globals of Node.js, because tests run there. */
// biome-ignore lint/style/noDefaultExport: Jest takes its environment as a default export.
export default class NativeEnvironment extends TestEnvironment {
  constructor(config: JestEnvironmentConfig, context: EnvironmentContext) {
    super(config, context);
    this.fakeTimersModern = new ModernFakeTimers({
      config: config.projectConfig,
      global: globalThis,
    });
    this.moduleMocker = new ModuleMocker(globalThis);
  }
}
