// The texts of the second factor, in both languages in one file: they are fetched with its pages and are no part of an app's first
// load, which every text of the dictionaries is.
import { useCallback } from 'react';
import { useI18n } from '../../i18n/i18n';
import { fill, type Values } from '../../i18n/translate';

export const en = {
  'step.title': 'Second factor',
  'step.lead': 'Enter the six digits that your authenticator app shows.',
  'step.code': 'Code',
  'step.recovery': 'Recovery code',
  'step.useRecovery': 'Use a recovery code instead',
  'step.useApp': 'Use the authenticator app instead',
  'step.recoveryLead': 'Enter one of the recovery codes that you saved. Each works once.',
  'step.submit': 'Continue',
  'step.busy': 'Checking…',
  'step.back': 'Back to sign-in',
  'step.missing': 'Enter the code.',
  'step.wrong':
    'This code is not valid. A code works once: wait for the next one, and check the clock of your device.',
  'step.wrongRecovery': 'This recovery code is not valid, or was used before.',
  'step.expired': 'This took too long. Sign in again.',

  'enrol.title': 'Set up a second factor',
  'enrol.required': 'Your organisation requires a second factor for your account. Set it up to sign in.',
  'enrol.scan': '1. Scan this code with an authenticator app.',
  'enrol.picture': 'QR code for the authenticator app',
  'enrol.type': 'Or type this key into the app:',
  'enrol.confirm': '2. Enter the six digits that the app shows.',
  'enrol.submit': 'Switch on',
  'enrol.cancel': 'Cancel',
  'enrol.wrong': 'This is not the code for this key. Check the clock of your device and enter the next code.',

  'codes.title': 'Your recovery codes',
  'codes.lead':
    'Save these codes where you find them without your phone. Each signs you in once in place of a code. They are shown only now.',
  'codes.copy': 'Copy',
  'codes.copied': 'Copied',
  'codes.copyFailed': 'Copying did not work. Select the codes and copy them by hand.',
  'codes.print': 'Print',
  'codes.saved': 'I have saved them',
  'codes.printTitle': 'tidepool recovery codes for {email}',

  'panel.title': 'Second factor',
  'panel.on': 'On',
  'panel.off': 'Off',
  'panel.onLead': 'Signing in asks for a code of your authenticator app.',
  'panel.offLead': 'With a second factor, nobody can sign in as you with your password alone.',
  'panel.required': 'Required for your account: it cannot be switched off.',
  'panel.left': 'Recovery codes left: {count}',
  'panel.fewLeft': 'Few recovery codes are left: {count}. Make new ones.',
  'panel.sso':
    'You sign in through your organisation’s single sign-on, which asks for a second factor by itself.',
  'panel.setUp': 'Set up',
  'panel.replace': 'Use another app',
  'panel.newCodes': 'New recovery codes',
  'panel.switchOff': 'Switch off',
  'panel.done': 'The second factor is on. Other sessions are signed out.',
  'panel.isOff': 'The second factor is off.',

  'proof.password': 'Current password',
  'proof.code': 'Code of your app, or a recovery code',
  'proof.go': 'Continue',
  'proof.off': 'Switch off',
  'proof.offLead': 'After this, your password alone is enough to sign in.',
  'proof.codesLead': 'All older recovery codes end.',
  'proof.passwordMissing': 'Enter your current password.',
  'proof.passwordWrong': 'The current password is incorrect.',

  'reset.label': 'Your password was changed by somebody else',
  'reset.by': 'Your password was set by {by}.',
  'reset.bySystem': 'Your password was set on the server’s command line.',
  'reset.advice': 'If you did not ask for it, change your password and report it.',
  'reset.seen': 'I know about it',
};

export type Key = keyof typeof en;

export const zh: Record<Key, string> = {
  'step.title': '两步验证',
  'step.lead': '请输入身份验证器应用显示的六位数字。',
  'step.code': '验证码',
  'step.recovery': '恢复码',
  'step.useRecovery': '改用恢复码',
  'step.useApp': '改用身份验证器应用',
  'step.recoveryLead': '请输入您保存的恢复码之一。每个恢复码只能使用一次。',
  'step.submit': '继续',
  'step.busy': '正在验证…',
  'step.back': '返回登录',
  'step.missing': '请输入验证码。',
  'step.wrong': '验证码无效。每个验证码只能使用一次：请等待下一个，并检查设备的时间。',
  'step.wrongRecovery': '恢复码无效或已被使用。',
  'step.expired': '操作超时，请重新登录。',

  'enrol.title': '设置两步验证',
  'enrol.required': '您的组织要求您的账号启用两步验证。请先完成设置再登录。',
  'enrol.scan': '1. 用身份验证器应用扫描此二维码。',
  'enrol.picture': '供身份验证器应用扫描的二维码',
  'enrol.type': '或在应用中手动输入此密钥：',
  'enrol.confirm': '2. 输入应用显示的六位数字。',
  'enrol.submit': '启用',
  'enrol.cancel': '取消',
  'enrol.wrong': '验证码与此密钥不符。请检查设备的时间，并输入下一个验证码。',

  'codes.title': '您的恢复码',
  'codes.lead':
    '请将这些恢复码保存在没有手机也能找到的地方。每个恢复码可代替验证码登录一次，且只在此时显示。',
  'codes.copy': '复制',
  'codes.copied': '已复制',
  'codes.copyFailed': '复制失败，请选中恢复码手动复制。',
  'codes.print': '打印',
  'codes.saved': '我已保存',
  'codes.printTitle': 'tidepool 恢复码：{email}',

  'panel.title': '两步验证',
  'panel.on': '已启用',
  'panel.off': '未启用',
  'panel.onLead': '登录时需要身份验证器应用的验证码。',
  'panel.offLead': '启用两步验证后，仅凭密码无法以您的身份登录。',
  'panel.required': '您的账号必须启用，无法关闭。',
  'panel.left': '剩余恢复码：{count}',
  'panel.fewLeft': '恢复码所剩不多：{count}。请生成新的恢复码。',
  'panel.sso': '您通过组织的单点登录进行登录，两步验证由其负责。',
  'panel.setUp': '设置',
  'panel.replace': '更换应用',
  'panel.newCodes': '生成新的恢复码',
  'panel.switchOff': '关闭',
  'panel.done': '两步验证已启用，其他登录均已退出。',
  'panel.isOff': '两步验证已关闭。',

  'proof.password': '当前密码',
  'proof.code': '应用的验证码或恢复码',
  'proof.go': '继续',
  'proof.off': '关闭',
  'proof.offLead': '关闭后，仅凭密码即可登录。',
  'proof.codesLead': '所有旧的恢复码将失效。',
  'proof.passwordMissing': '请输入当前密码。',
  'proof.passwordWrong': '当前密码不正确。',

  'reset.label': '您的密码已被他人更改',
  'reset.by': '您的密码由 {by} 设置。',
  'reset.bySystem': '您的密码是在服务器命令行中设置的。',
  'reset.advice': '如果这不是您要求的，请更改密码并报告此事。',
  'reset.seen': '我已知晓',
};

const TEXTS = { en, zh };

export function useTexts() {
  const { language } = useI18n();
  return useCallback((key: Key, values?: Values) => fill(TEXTS[language][key], values, language), [language]);
}
