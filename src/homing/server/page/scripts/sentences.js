// Things to say to a home, made of its own rooms and devices.

import { language } from "./language.js";

const LIGHT = /light|lamp|灯/i;
const CLIMATE = /climate|condition|thermostat|空调/i;
const HAN = /[\u4e00-\u9fff]/;

/** A few sentences that this home understands, in the language of the page where its rooms have names in it. */
export function sentencesFor(home) {
  const chinese = language() === "zh";
  const said = spoken(home, chinese);
  return said.length > 0 ? said : spoken(home, !chinese);
}

function spoken(home, chinese) {
  const ours = (one) => [one.name, ...(one.aliases ?? [])].find((name) => HAN.test(name) === chinese);
  const rooms = new Map((home.rooms ?? []).map((one) => [one.name, ours(one)]));
  const called = (room) => rooms.get(room) ?? ours({ name: room });
  const lit = home.devices.filter((one) => LIGHT.test(one.type) && one.room).map((one) => called(one.room));
  const names = [...new Set(lit)].filter(Boolean);
  const left = names.find((room) => /卧|bed/i.test(room)) ?? names[names.length - 1];
  const other = names.find((room) => room !== left);
  const climate = home.devices
    .filter((one) => CLIMATE.test(one.type))
    .map(ours)
    .find(Boolean);
  const said = chinese
    ? [other && `打开除${left}以外的灯`, climate && `把${climate}调到26度`, other && `关掉${other}所有的灯`]
    : [
        other && `turn on the lights except in the ${left.toLowerCase()}`,
        climate && `set the ${climate.toLowerCase()} to 21 degrees`,
        other && `turn off all lights in the ${other.toLowerCase()}`,
      ];
  return said.filter(Boolean);
}
