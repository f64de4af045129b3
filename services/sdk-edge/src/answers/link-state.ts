/** Maximum time that a flag keeps its previous state while an audience or a chunk of a list is missing. */
export const maxWaitMs = 30_000;

/** The references of a flag, if all of them are found. */
export type Resolved<References> =
  | { found: "all"; references: References }
  /** An audience or a chunk has not arrived, or a required flag lacks one. */
  | { found: "some" }
  /** A required flag does not exist. */
  | { found: "never" };

/** The state of a flag with references. */
export type LinkState<Form> = {
  /** The last complete form. Undefined without one, and for a flag that counts as not found. */
  form: Form | undefined;
  /** Time at which the wait ends or has ended. Undefined while nothing is missing. */
  waitsUntilMs: number | undefined;
};

/**
 * Decides the next state of a flag. While something is missing, the flag keeps its previous form, for 30 s in total:
 * further changes do not extend the wait. After that, and without a previous form, it is not found.
 */
export function nextLinkState<References, Form>(
  { form, waitsUntilMs = Number.NaN }: LinkState<Form>,
  resolved: Resolved<References>,
  { nowMs, prepare }: { nowMs: number; prepare: (references: References) => Form },
): LinkState<Form> {
  if (resolved.found === "all")
    return { form: prepare(resolved.references), waitsUntilMs: undefined };
  if (resolved.found === "never") return { form: undefined, waitsUntilMs: undefined };
  const untilMs = Number.isNaN(waitsUntilMs) ? nowMs + maxWaitMs : waitsUntilMs;
  return { form: nowMs < untilMs ? form : undefined, waitsUntilMs: untilMs };
}
