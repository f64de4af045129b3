/**
 * Checks that the sources of this package compile without the types of Node and of browsers. Each line below must fail
 * to compile, otherwise its directive is an error. The type check of the whole project includes this file. Clocks,
 * randomness and locales are part of the language, so `pure.test.ts` excludes them.
 */

// @ts-expect-error No environment variables, no exit.
export const environment = process.env;
// @ts-expect-error No buffers of Node.
export const bytes = Buffer.from("");
// @ts-expect-error No encoder of the platform.
export const encoder = new TextEncoder();
// @ts-expect-error No console.
console.log("");
// @ts-expect-error No timers.
setTimeout(() => undefined, 0);
// @ts-expect-error No network.
export const request = fetch("https://example.com");
// @ts-expect-error No browser.
export const element = document.body;
// @ts-expect-error No randomness of the platform.
export const random = crypto.randomUUID();
// @ts-expect-error No files.
export type { readFile } from "node:fs/promises";
