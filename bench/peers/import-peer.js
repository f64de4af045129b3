/** Imports one of this package's dependencies, which only a module inside of it can. */
const importPeer = (name) => import(name);
