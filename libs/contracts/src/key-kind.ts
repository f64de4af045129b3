import { z } from "zod";

/** Kinds of API keys. */
export const KeyKind = z.enum(["client", "reader", "server"]);
export type KeyKind = z.infer<typeof KeyKind>;
