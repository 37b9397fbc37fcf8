export * from "./channels.ts";
export * from "./client.ts";
export * from "./electron.ts";
