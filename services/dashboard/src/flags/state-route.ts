/** The route of a flag's state in one environment. */
export const stateRoute = "/api/v1/flags/{flagId}/environments/{envId}";

export const statePathOf = (place: { flag: { id: string }; environment: { id: string } }) => ({
  flagId: place.flag.id,
  envId: place.environment.id,
});

/** A change with this header is rejected if the version is no longer this one. */
export const ifVersion = (version: number | undefined) => ({ "If-Match": `"${version}"` });
