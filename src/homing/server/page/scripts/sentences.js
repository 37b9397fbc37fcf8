// Things to say to a home, made of its own rooms and devices.

const LIGHT = /light|lamp|灯/i;
const CLIMATE = /climate|condition|thermostat|空调/i;

/** A few sentences that this home understands, in the language its rooms are named in. */
export function sentencesFor(home) {
  const lit = [...new Set(home.devices.filter((one) => LIGHT.test(one.type) && one.room).map((one) => one.room))];
  const chinese = lit.some((room) => /[\u4e00-\u9fff]/.test(room));
  const rooms = lit.filter((room) => /[\u4e00-\u9fff]/.test(room) === chinese);
  const left = rooms.find((room) => /卧|bed/i.test(room)) ?? rooms[rooms.length - 1];
  const other = rooms.find((room) => room !== left);
  const climate = home.devices.find((one) => CLIMATE.test(one.type) && /[\u4e00-\u9fff]/.test(one.name) === chinese);
  const said = chinese
    ? [other && `打开除${left}以外的灯`, climate && `把${climate.name}调到26度`, other && `关掉${other}所有的灯`]
    : [
        other && `turn on the lights except in the ${left.toLowerCase()}`,
        climate && `set the ${climate.name.toLowerCase()} to 21 degrees`,
        other && `turn off all lights in the ${other.toLowerCase()}`,
      ];
  return said.filter(Boolean);
}
