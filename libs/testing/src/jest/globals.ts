/**
 * Replaces `@jest/globals` in test files and their helpers. Node.js evaluates a helper once per worker, while Jest
 * makes new globals for each test file. Therefore every export forwards to the globals of the current file.
 */
type Globals = Record<string, object>;

let current: Globals = {};

/** Sets the globals of the test file that this worker runs next. */
export function useGlobals(globals: Globals): void {
  current = globals;
}

function forward(name: string): object {
  const target = () => current[name] as (...args: unknown[]) => unknown;
  return new Proxy(() => undefined, {
    apply: (_, __, args) => target()(...args),
    get: (_, property) => Reflect.get(target(), property),
    has: (_, property) => Reflect.has(target(), property),
  });
}

export const afterAll = forward("afterAll");
export const afterEach = forward("afterEach");
export const beforeAll = forward("beforeAll");
export const beforeEach = forward("beforeEach");
export const describe = forward("describe");
export const expect = forward("expect");
export const it = forward("it");
export const jest = forward("jest");
export const test = forward("test");
