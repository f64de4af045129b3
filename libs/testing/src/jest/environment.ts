import type { EnvironmentContext, JestEnvironmentConfig } from "@jest/environment";
import { ModernFakeTimers } from "@jest/fake-timers";
import { TestEnvironment } from "jest-environment-node";
import { ModuleMocker } from "jest-mock";

/** Where `jest.setTimeout` writes the limit of a file: in Jest's context, while the tests read the global object. */
const timeoutOfFile = Symbol.for("TEST_TIMEOUT_SYMBOL");

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
    Reflect.deleteProperty(globalThis, timeoutOfFile);
    Object.defineProperty(this.global, timeoutOfFile, {
      configurable: true,
      set: (ms: number) => Reflect.set(globalThis, timeoutOfFile, ms),
    });
  }
}
