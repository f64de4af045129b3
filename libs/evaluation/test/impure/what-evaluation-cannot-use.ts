/**
 * This compiles only as long as each of these lines does not: what the sources of this package are
 * compiled with knows neither Node nor a browser. It is checked with the types of the whole project. What the
 * language itself has of clocks, randomness and locales is kept out by `pure.test.ts`.
 */

// @ts-expect-error No environment variables, no exit.
export const environment = process.env;
// @ts-expect-error No bytes of Node.
export const bytes = Buffer.from("");
// @ts-expect-error No encoder of the platform.
export const encoder = new TextEncoder();
// @ts-expect-error Nothing is printed.
console.log("");
// @ts-expect-error Nothing is timed.
setTimeout(() => undefined, 0);
// @ts-expect-error No network.
export const request = fetch("https://example.com");
// @ts-expect-error No browser.
export const element = document.body;
// @ts-expect-error No randomness of the platform.
export const random = crypto.randomUUID();
// @ts-expect-error No files.
export type { readFile } from "node:fs/promises";
