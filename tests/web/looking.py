"""What is measured of a page: what would keep somebody from seeing, reading or using it."""

LOOK = r"""() => {
  const wrong = {};
  const say = (name, values) => { if (values.length) wrong[name] = values.slice(0, 5); };
  const all = what => [...document.querySelectorAll(what)];
  const isSeen = one => one.checkVisibility({opacityProperty: true, visibilityProperty: true});
  const write = one => one.outerHTML.slice(0, 120);
  const named = one => one.getAttribute('aria-label')
    || document.getElementById(one.getAttribute('aria-labelledby') || '')?.textContent;

  if (!document.documentElement.lang) wrong.language = [''];
  if (!document.title) wrong.title = [''];
  if (all('h1').length !== 1) wrong.h1 = [all('h1').length];
  const levels = all('h1,h2,h3,h4,h5,h6').map(one => Number(one.tagName[1]));
  say('headings', levels.filter((level, at) => level > (at ? levels[at - 1] : 0) + 1));
  const ids = all('[id]').map(one => one.id);
  say('twice', ids.filter((id, at) => ids.indexOf(id) !== at));

  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) wrong.wide = [root.scrollWidth, ...all('body *')
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('.scroll'))
    .map(write).slice(0, 3)];

  say('unlabelled', all('input:not([type=hidden]),select,textarea')
    .filter(one => !one.labels.length && !named(one)).map(write));
  say('nameless', [
    ...all('a[href],button,summary').filter(one => isSeen(one)
      && !(one.textContent.trim() || named(one) || one.querySelector('img[alt]'))),
    ...all('svg').filter(one => !named(one) && one.getAttribute('aria-hidden') !== 'true'),
    ...all('img').filter(one => !one.hasAttribute('alt')),
    ...all('meter,[role=img],[role=timer],nav').filter(one => !named(one)),
  ].map(write));

  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const parse = text => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (front, back) =>
    [0, 1, 2].map(at => front[at] * front[3] + back[at] * (1 - front[3]));
  const ground = one => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3]) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((back, front) => over(front, back), [255, 255, 255]);
  };
  const light = colour => {
    const [red, green, blue] = colour.map(part => part / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = one => {
    const style = getComputedStyle(one), back = ground(one);
    const ink = parse(one instanceof SVGElement ? style.fill : style.color);
    const [high, low] = [light(over(ink, back)), light(back)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const known = new Map();
  say('pale', all('body *').filter(one => {
    const isText = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!isText || one.closest('script,style,option,title') || !isSeen(one)) return false;
    const style = getComputedStyle(one);
    const back = ground(one).join();
    const key = [style.color, style.fill, one instanceof SVGElement, back].join();
    if (!known.has(key)) known.set(key, contrast(one));
    return known.get(key) < 4.5;
  }).map(one => `${contrast(one).toFixed(2)} ${write(one)}`));
  return JSON.stringify(wrong);
}"""
"""Returns what is wrong by name, with the first few of each; nothing where all is well."""
