/** Imports one of this package's dependencies, which only a module inside of it can. */
export const importPeer = (name) => import(name);
