/** The channels for the windows of an Electron app; knows no more of Electron than it uses. */
import type { ChannelName } from "./channels.ts";
import type { HomingClient } from "./client.ts";

/** The message that windows get while a long request is under way: `{channel, done, total}`. */
export const PROGRESS = "homing:progress";

/** What is used of `ipcMain`. */
export interface Bridge {
  handle(channel: string, listener: (event: WindowEvent, request: any) => Promise<unknown>): void;
}

export interface WindowEvent {
  sender: { send(channel: string, ...args: unknown[]): void };
}

/** Let windows call every channel with `ipcRenderer.invoke(channel, request)`; they get the envelope. */
export function handleChannels(bridge: Bridge, homing: HomingClient): void {
  for (const channel of homing.greeting.channels as ChannelName[]) {
    bridge.handle(channel, (event, request) =>
      homing.request(channel, request ?? {}, {
        onProgress: (progress) => event.sender.send(PROGRESS, { channel, ...progress }),
      }),
    );
  }
}
