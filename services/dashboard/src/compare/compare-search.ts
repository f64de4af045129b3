/** The comparison that the address names: two environments by their names, and the filters. */
export type CompareSearch = {
  from?: string | undefined;
  to?: string | undefined;
  q?: string | undefined;
  /** Shows equal flags too. */
  all?: true | undefined;
};

export function readCompareSearch(search: Record<string, unknown>): CompareSearch {
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);
  return {
    from: text(search.from),
    to: text(search.to),
    q: text(search.q),
    all: search.all === true || search.all === "true" ? true : undefined,
  };
}

/**
 * Chooses the environments to compare: those of the address, otherwise the usual way of a change, which is from staging
 * to production. Returns undefined with fewer than two environments.
 */
export function choosePair<Environment extends { name: string }>(
  environments: readonly Environment[],
  { from, to }: Pick<CompareSearch, "from" | "to">,
): { from: Environment; to: Environment } | undefined {
  const named = (name: string | undefined) =>
    environments.find((environment) => environment.name === name);
  const target =
    named(to) ??
    [named("production"), ...environments.toReversed()].find(
      (environment) => environment !== undefined && environment.name !== from,
    );
  const source = [named(from), named("staging"), ...environments].find(
    (environment) => environment !== undefined && environment !== target,
  );
  return source === undefined || target === undefined ? undefined : { from: source, to: target };
}
