/** Name and version of this package. A release sets the version. */
export const packageName = "@halyard/server-sdk";
export const version = "0.2.0";
