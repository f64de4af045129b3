import { z } from "zod";
import { variable } from "./environment.ts";

const loopbackHost = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** Returns whether a URL is HTTPS, or plain HTTP at a loopback address, where no other machine can read the traffic. */
export function isSafeUrl(url: URL): boolean {
  return url.protocol === "https:" || (url.protocol === "http:" && loopbackHost.test(url.hostname));
}

function isSafeOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && isSafeUrl(url) && url.href === `${url.origin}/`;
}

export const publicUrlVariable = variable(z.string().refine(isSafeOrigin).optional(), {
  description:
    "Address at which browsers open this installation. People can sign in only if it is set. It is the same for management, scheduler, webhook-dispatcher and usage-metering.",
  expects: "an https URL without a path, or an http URL at a loopback address",
});
